"""The guarded sender: the only code that opens a connection to an endpoint.

The address policy itself is the domain's; here it is applied inside the connect call.
"""
