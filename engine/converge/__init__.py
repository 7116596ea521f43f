"""Plan to Pulumi: declare, drive, collect events, recover."""
