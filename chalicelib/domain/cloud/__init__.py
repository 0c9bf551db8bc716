"""Queues and buses in AWS accounts of others: who Relay is to them, what they are told, what they answer."""
