"""Our environments behind the interfaces of other libraries."""
