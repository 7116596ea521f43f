"""The programs that no package carries: built once from the modules pinned in tools/, kept in the user's cache."""
