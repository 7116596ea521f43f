"""The embedded default environment: EC2 by moto, a simulated cluster, and stand-ins for Pulumi's plugins."""
