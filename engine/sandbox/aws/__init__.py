"""Nodewright's stand-in for `pulumi-resource-aws`: the resource types that nodewright declares, on loopback only.

It speaks Pulumi's provider protocol and performs through boto3. It is no replacement for the official plugin and
refuses every endpoint that is not on this machine.
"""
