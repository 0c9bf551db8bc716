"""How the commands about a stage end: with a sentence that says what is amiss, not with a traceback."""

import sys
from collections.abc import Callable

from botocore.exceptions import BotoCoreError, ClientError


def exit_code(work: Callable[[], None], *expected: type[Exception]) -> int:
    """Do the work of a command; 1 when something that is expected, or AWS, keeps it from being done."""
    try:
        work()
    except expected as error:
        print(error, file=sys.stderr)
        return 1
    except (BotoCoreError, ClientError) as error:
        print(f"AWS refuses: {error}", file=sys.stderr)
        return 1
    return 0


def say(sentence: str) -> None:
    """Tell who watches."""
    print(sentence, flush=True)
