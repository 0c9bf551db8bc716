"""A stack is brought on from whatever an earlier run left: on an emulator, with one queue or two."""

import json
from collections.abc import Iterator

import pytest

from infra.deploying.account import Account
from infra.deploying.stack import Change, Stack, StackError
from infra.local.emulator import EmulatorName, free_port, running

QUEUE = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "one"}}
BROKEN = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "two", "VisibilityTimeout": 50_000}}
CHANGED = {**QUEUE, "Properties": {"QueueName": "one", "VisibilityTimeout": 77}}


class Trial:
    """A stack of a test's own, and what was said of it."""

    def __init__(self, account: Account, name: str) -> None:
        self.said: list[str] = []
        self.account = account
        self.stack = Stack(name, account, self.said.append)
        self.api = account.client("cloudformation")
        self._s3 = account.client("s3")
        self._s3.create_bucket(Bucket="templates")

    def change(self, **resources: object) -> Change:
        body = json.dumps({"Resources": resources})
        key = f"{self.stack.name}-{abs(hash(body))}.json"
        self._s3.put_object(Bucket="templates", Key=key, Body=body)
        return Change(self.account.object_url("templates", key), ())

    def make(self, **resources: object) -> bool:
        """Do what a deployment does."""
        self.stack.make_ready()
        return self.stack.apply(self.change(**resources))

    def leave(self, kind: str, *, execute: bool, **resources: object) -> None:
        """Do by hand half of what a deployment does, and no more; nothing is rolled back."""
        self.api.create_change_set(
            StackName=self.stack.name,
            ChangeSetName="by-hand",
            ChangeSetType=kind,
            TemplateBody=json.dumps({"Resources": resources}),
        )
        if execute:
            self.api.execute_change_set(
                StackName=self.stack.name, ChangeSetName="by-hand", DisableRollback=True
            )
            self.stack.wait()


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    state = tmp_path_factory.mktemp("emulator")
    with running(EmulatorName.MINISTACK, state, free_port()) as endpoint_url:
        yield Account("us-east-1", endpoint_url)


@pytest.fixture
def trial(account: Account, request: pytest.FixtureRequest) -> Iterator[Trial]:
    made = Trial(account, request.node.name.partition("[")[0].replace("_", "-")[-60:].strip("-"))
    yield made
    made.stack.delete()


def test_nothing_becomes_a_stack_and_nothing_to_change_is_success(trial: Trial) -> None:
    assert trial.make(Queue=QUEUE) is True
    assert trial.stack.status() == "CREATE_COMPLETE"
    assert trial.make(Queue=QUEUE) is False
    assert trial.make(Queue=CHANGED) is True


def test_two_change_sets_within_a_second_have_two_names(trial: Trial) -> None:
    trial.make(Queue=QUEUE)
    first = trial.stack._create_change_set(trial.change(Queue=CHANGED))  # noqa: SLF001 - before it is executed
    assert trial.stack._create_change_set(trial.change(Queue=CHANGED)) != first  # noqa: SLF001 - as above
    assert trial.make(Queue=CHANGED) is True


def test_a_change_that_nobody_executed_is_gone_on_from(trial: Trial) -> None:
    trial.leave("CREATE", execute=False, Queue=QUEUE)
    assert trial.stack.status() == "REVIEW_IN_PROGRESS"
    assert trial.make(Queue=QUEUE) is True


def test_a_first_deployment_that_failed_tells_why_and_begins_again(trial: Trial) -> None:
    with pytest.raises(StackError, match=r"(?s)is ROLLBACK_COMPLETE.*Broken: .*VisibilityTimeout") as failed:
        trial.make(Queue=QUEUE, Broken=BROKEN)
    assert "run this again" in str(failed.value)
    assert trial.make(Queue=QUEUE) is True
    assert any("goes first; data is kept" in sentence for sentence in trial.said)


def test_a_first_deployment_that_failed_and_stood_still_begins_again(trial: Trial) -> None:
    trial.leave("CREATE", execute=True, Queue=QUEUE, Broken=BROKEN)
    assert trial.stack.status() == "CREATE_FAILED"
    assert trial.make(Queue=QUEUE) is True


def test_an_update_that_failed_leaves_what_ran_before_and_the_next_one_goes_on(trial: Trial) -> None:
    trial.make(Queue=QUEUE)
    with pytest.raises(StackError, match=r"(?s)What ran before runs on.*Broken: "):
        trial.make(Queue=CHANGED, Broken=BROKEN)
    assert trial.stack.status() == "UPDATE_ROLLBACK_COMPLETE"
    assert trial.make(Queue=QUEUE) is False
    assert trial.make(Queue=CHANGED) is True


def test_an_update_that_failed_and_stood_still_is_rolled_back_first(trial: Trial) -> None:
    trial.make(Queue=QUEUE)
    trial.leave("UPDATE", execute=True, Queue=CHANGED, Broken=BROKEN)
    assert trial.stack.status() == "UPDATE_FAILED"
    assert trial.make(Queue=CHANGED) is True
    assert any("rolling it back" in sentence for sentence in trial.said)


def test_a_template_that_is_none_is_told(trial: Trial) -> None:
    trial.make(Queue=QUEUE)
    with pytest.raises(StackError, match=r"does not take the template: .*AWS::Nobody::Knows"):
        trial.make(Queue={"Type": "AWS::Nobody::Knows"})
    assert trial.make(Queue=QUEUE) is False


def test_what_is_there_already_but_not_named_in_so_many_words_is_told(trial: Trial) -> None:
    """CloudFormation finds that before it begins, and tells it nowhere but in what went wrong with that."""
    trial.make(Queue=QUEUE)
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": {"Fn::Sub": "templates"}}}
    with pytest.raises(StackError, match="'templates' already exists"):
        trial.make(Queue=QUEUE, Bucket=bucket)
    assert trial.make(Queue=CHANGED) is True


def test_a_stack_that_is_gone_is_gone(trial: Trial) -> None:
    trial.make(Queue=QUEUE)
    trial.stack.delete()
    trial.stack.delete()
    assert not trial.stack.exists()
    assert not trial.stack.holds_anything()
    assert trial.make(Queue=QUEUE) is True
