"""The command ``skillpress``: one file per subcommand, imported when its subcommand is called."""
