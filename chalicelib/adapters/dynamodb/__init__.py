"""DynamoDB: the stores of every port, over one small record protocol.

`records` says what a record store can do, `tables` does it with boto3; nothing here decides.
"""
