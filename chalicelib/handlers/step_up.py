"""The route that gives an assertion for a code of the second factor."""

from chalice.app import Response

from chalicelib import bootstrap
from chalicelib.handlers import http
from chalicelib.handlers.http import Asked
from chalicelib.wire import answers, parsing, trusting


def prove(asked: Asked) -> Response:
    """Give an assertion for a code, good once, and the actions that are to be done."""
    body = parsing.parse(trusting.StepUpBody, asked.body)
    actions = trusting.actions_of(body)
    made = bootstrap.step_up().prove(asked.caller, body.code.replace(" ", ""), actions, asked.actor)
    return http.reply(answers.stepped_up(made.assertion, made.text))
