"""The pass and the loop: the only room that knows every port."""
