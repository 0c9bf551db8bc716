"""F118: a store that is busy, and a race that was lost, are told apart; nothing is tried for ever.

AWS's answers stand in for it where an emulator never gives them; what is tried again reaches ministack.
"""

from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from chalicelib.adapters.dynamodb.records import Delete, Insert, Key, Made, Merge, Span, Tables, Update
from chalicelib.adapters.dynamodb.tables import TRIES, DynamoTables
from chalicelib.adapters.sqs import Queues, SqsBells, SqsReceipts
from chalicelib.application.ports import Unavailable
from chalicelib.domain.change import Change
from infra.local.provision import provision
from tests.contract.emulated import answered, json_service, strict_client
from tests.contract.given import NOW_S, TENANT, capture, claim, endpoint, event, lane_of, stores_over

A, B = Key("owed", "lane", "a"), Key("owed", "lane", "b")
WRITES = [Insert(A, {"x": 1}), Insert(B, {"x": 1})]
Document = Mapping[str, Any]
Answer = tuple[int, Document | bytes]
THROTTLED: Answer = (400, {"__type": "com.amazon.coral.availability#ThrottlingException", "message": "slow"})
BROKEN: Answer = (503, b"<html>upstream is gone</html>")


def cancelled(*codes: str) -> Answer:
    """Give the answer to a transaction that was cancelled for these reasons."""
    return 400, {
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "Message": f"Transaction cancelled, please refer cancellation reasons [{', '.join(codes)}]",
        "CancellationReasons": [{"Code": code} for code in codes],
    }


def responses(*codes: str) -> Answer:
    """Give the answer to a batch of statements: an error code for each, or none."""
    return 200, {"Responses": [{"Error": {"Code": code, "Message": ""}} if code else {} for code in codes]}


@pytest.fixture
def store(ministack: str, prefix: str) -> DynamoTables:
    """The tables on ministack, whose answers a test may replace."""
    provision(ministack, prefix, tables_only=True)
    return DynamoTables(json_service("dynamodb", ministack), prefix)


def there(store: Tables) -> list[str]:
    return [record["sk"] for record in store.query("owed", "lane", Span(), 10).records]


class TestTransactions:
    @pytest.mark.parametrize(
        "reasons",
        [("TransactionConflict", "None"), ("TransactionConflict", "ThrottlingError")],
        ids=["conflict", "conflict and throttle"],
    )
    def test_f118_a_conflict_is_tried_again_as_the_same_transaction(
        self, store: Tables, ministack: str, reasons: tuple[str, ...]
    ) -> None:
        twice = [cancelled(*reasons)] * 2
        with answered("dynamodb", ministack, "TransactWriteItems", twice) as asked:
            assert store.together(WRITES) == []
        assert len(asked) == 3
        assert asked[0] == asked[1] == asked[2]
        assert asked[0]["ClientRequestToken"]
        assert there(store) == ["a", "b"]

    @pytest.mark.parametrize(
        "reasons,places",
        [
            (("ConditionalCheckFailed", "None"), [0]),
            (("TransactionConflict", "ConditionalCheckFailed"), [1]),
            (("ConditionalCheckFailed", "ConditionalCheckFailed"), [0, 1]),
        ],
        ids=["the first", "beside a conflict", "both"],
    )
    def test_f118_a_failed_condition_is_a_lost_race_and_not_tried_again(
        self, store: Tables, ministack: str, reasons: tuple[str, ...], places: list[int]
    ) -> None:
        with answered("dynamodb", ministack, "TransactWriteItems", [cancelled(*reasons)]) as asked:
            assert store.together(WRITES) == places
        assert len(asked) == 1
        assert there(store) == []

    def test_f118_what_stays_busy_is_given_up_on(self, store: Tables, ministack: str) -> None:
        always = [
            cancelled("None", reason)
            for reason in ("TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded")
        ] * TRIES
        with (
            answered("dynamodb", ministack, "TransactWriteItems", always) as asked,
            pytest.raises(Unavailable),
        ):
            store.together(WRITES)
        assert len(asked) == TRIES

    def test_a_transaction_still_under_way_is_asked_for_again(self, store: Tables, ministack: str) -> None:
        under_way: Answer = (400, {"__type": "x#TransactionInProgressException", "Message": "wait"})
        with answered("dynamodb", ministack, "TransactWriteItems", [under_way]) as asked:
            assert store.together(WRITES) == []
        assert asked[0] == asked[1]

    def test_a_transaction_that_was_made_but_not_answered_is_made_once(
        self, store: Tables, ministack: str
    ) -> None:
        """The second try bears the token of the first, and is answered as the first should have been."""
        made: list[Document] = []

        def lose(request: Any, **_: object) -> None:  # noqa: ANN401 - botocore's request
            made.append(request.body)
            if len(made) == 1:
                send_unheard(ministack, request)
                raise ConnectionResetError

        events = strict_client("dynamodb", ministack).meta.events
        events.register_last("before-send.dynamodb.TransactWriteItems", lose)
        try:
            assert store.together(WRITES) == []
        finally:
            events.unregister("before-send.dynamodb.TransactWriteItems", lose)
        assert len(made) == 2
        assert there(store) == ["a", "b"]

    @pytest.mark.parametrize("reason", ["ValidationError", "ItemCollectionSizeLimitExceeded", "AccessDenied"])
    def test_a_transaction_that_can_never_be_made_is_told_at_once(
        self, store: Tables, ministack: str, reason: str
    ) -> None:
        with (
            answered("dynamodb", ministack, "TransactWriteItems", [cancelled("None", reason)]) as asked,
            pytest.raises(Unavailable, match=reason),
        ):
            store.together(WRITES)
        assert len(asked) == 1

    def test_f118_a_conflict_is_neither_a_lost_race_nor_a_missing_thing(
        self, store: Tables, ministack: str
    ) -> None:
        stores, of = stores_over(store), endpoint()
        stores.endpoints.create(of)
        always = [cancelled("TransactionConflict", "None")] * (TRIES + 1)
        with answered("dynamodb", ministack, "TransactWriteItems", always), pytest.raises(Unavailable):
            stores.endpoints.replace(of, of)
        first = capture(event(1), [of], claim())
        assert stores.capturing.commit([capture(event(0))], NOW_S) == [None]
        conflict = [cancelled("TransactionConflict", "None", "None", "None")]
        with answered("dynamodb", ministack, "TransactWriteItems", conflict):
            assert stores.capturing.commit([first], NOW_S) == [None]
        assert stores.work.peek(lane_of(of), 2) == [first.owing[0].owed]
        assert stores.endpoints.get(TENANT, of.id) == of


def send_unheard(url: str, request: Any) -> None:  # noqa: ANN401 - botocore's request
    """Send a request whose answer nobody hears."""
    service = json_service("dynamodb", url)
    connection = service._connection()  # noqa: SLF001 - the very connection that then breaks
    connection.request("POST", "/", body=request.body, headers=dict(request.headers.items()))
    connection.getresponse().read()
    connection.close()


class TestStatements:
    def test_f118_a_plain_write_during_a_transaction_is_tried_again_alone(
        self, store: Tables, ministack: str
    ) -> None:
        store.each([Insert(A, {"x": 1})])
        step = Change((), {}, {"x": 1})
        first = responses("", "TransactionConflict", "ConditionalCheckFailed")
        with answered("dynamodb", ministack, "BatchExecuteStatement", [first]) as asked:
            made = store.each([Delete(Key("owed", "lane", "z")), Update(A, step), Insert(B, {"x": 1})])
        assert [len(each["Statements"]) for each in asked] == [3, 1]
        assert made == [
            Made(done=True),
            Made(done=True, record={"pk": "lane", "sk": "a", "x": 2}),
            Made(done=False),
        ]

    @pytest.mark.parametrize(
        "code",
        [
            "TransactionConflict",
            "ThrottlingError",
            "ProvisionedThroughputExceeded",
            "RequestLimitExceeded",
            "InternalServerError",
        ],
    )
    def test_f118_what_is_busy_is_tried_again(self, store: Tables, ministack: str, code: str) -> None:
        with answered("dynamodb", ministack, "BatchExecuteStatement", [responses(code, code)] * 2) as asked:
            assert [made.done for made in store.each(WRITES)] == [True, True]
        assert len(asked) == 3

    def test_f118_what_stays_busy_is_given_up_on(self, store: Tables, ministack: str) -> None:
        always = [responses("TransactionConflict")] * (TRIES + 1)
        with (
            answered("dynamodb", ministack, "BatchExecuteStatement", always) as asked,
            pytest.raises(Unavailable),
        ):
            store.each(WRITES[:1])
        assert len(asked) == TRIES

    @pytest.mark.parametrize("code", ["ValidationError", "ResourceNotFound", "AccessDenied"])
    def test_a_write_that_can_never_be_made_is_told_at_once(
        self, store: Tables, ministack: str, code: str
    ) -> None:
        with (
            answered("dynamodb", ministack, "BatchExecuteStatement", [responses(code)]) as asked,
            pytest.raises(Unavailable, match=code),
        ):
            store.each(WRITES[:1])
        assert len(asked) == 1


class TestReads:
    @pytest.fixture(autouse=True)
    def given(self, store: Tables) -> None:
        store.each(WRITES)

    def unprocessed(self, store: Tables, asked: Document) -> Document:
        (name,) = asked["RequestItems"]
        keys = [{"pk": {"S": "lane"}, "sk": {"S": "b"}}]
        found = {"pk": {"S": "lane"}, "sk": {"S": "a"}, "x": {"N": "1"}}
        left = {name: {"Keys": keys, "ConsistentRead": True}}
        return {"Responses": {name: [found]}, "UnprocessedKeys": left}

    def partial(self, store: Tables, ministack: str) -> Document:
        with answered("dynamodb", ministack, "BatchGetItem", []) as asked:
            store.get([A, B])
        return self.unprocessed(store, asked[0])

    def test_what_a_busy_store_left_out_is_asked_for_again(self, store: Tables, ministack: str) -> None:
        left_out = self.partial(store, ministack)
        with answered("dynamodb", ministack, "BatchGetItem", [(200, left_out)]) as asked:
            assert set(store.get([A, B])) == {A, B}
        assert asked[1]["RequestItems"] == left_out["UnprocessedKeys"]

    def test_a_record_that_stays_left_out_is_not_taken_for_missing(
        self, store: Tables, ministack: str
    ) -> None:
        always = [(200, self.partial(store, ministack))] * (TRIES + 1)
        with answered("dynamodb", ministack, "BatchGetItem", always) as asked, pytest.raises(Unavailable):
            store.get([A, B])
        assert len(asked) == TRIES

    @pytest.mark.parametrize("answer", [THROTTLED, BROKEN], ids=["throttled", "no JSON"])
    def test_a_call_that_fails_in_passing_is_made_again(
        self, store: Tables, ministack: str, answer: Answer
    ) -> None:
        with answered("dynamodb", ministack, "Query", [answer]) as asked:
            assert there(store) == ["a", "b"]
        assert len(asked) == 2

    @pytest.mark.parametrize("answer", [THROTTLED, BROKEN], ids=["throttled", "no JSON"])
    def test_a_call_that_keeps_failing_is_told_as_unavailable(
        self, store: Tables, ministack: str, answer: Answer
    ) -> None:
        with answered("dynamodb", ministack, "Query", [answer] * 9) as asked, pytest.raises(Unavailable):
            there(store)
        assert 1 < len(asked) < 9


NOWHERE = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    "call",
    [
        lambda tables: tables.get([A]),
        lambda tables: tables.query("owed", "lane", Span(), 1),
        lambda tables: tables.each(WRITES),
        lambda tables: tables.together([Merge(A, {"x": 1})]),
        lambda tables: next(tables.walk("owed")),
        lambda tables: next(tables.indexed("gates", "armed", "0")),
    ],
    ids=["get", "query", "each", "together", "walk", "indexed"],
)
def test_a_store_that_cannot_be_reached_is_told_as_unavailable(call: Any) -> None:  # noqa: ANN401 - a lambda
    with pytest.raises(Unavailable):
        call(DynamoTables(json_service("dynamodb", NOWHERE), "relay-"))


def test_f113_queues_that_cannot_be_reached_lose_bells_and_keep_receipts() -> None:
    service = json_service("sqs", NOWHERE)
    bells = SqsBells(service, Queues(service, "relay-"), 4)
    assert bells.ring_later(lane_of(endpoint()), 1) == 1
    with pytest.raises(Unavailable):
        SqsReceipts(service, f"{NOWHERE}/0/relay-shard-0.fifo").delete(["receipt"])


class _ClosesSilently(BaseHTTPRequestHandler):
    """Answers once per connection and closes it without a word, as a load balancer does after a while."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer with no items."""
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b'{"Items":[]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def closing() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _ClosesSilently) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_a_connection_that_was_closed_meanwhile_is_opened_again(closing: str) -> None:
    service = json_service("dynamodb", closing)
    tables = DynamoTables(service, "relay-")
    for _ in range(3):
        assert tables.query("owed", "lane", Span(), 1).records == ()
    service.close()
