"""The command ``skillpress``: one file per subcommand, imported when it is asked for."""
