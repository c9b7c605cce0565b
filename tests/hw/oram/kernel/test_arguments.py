"""The table of arguments: secret words, and the lock behind them."""

from hw.oram.config import OramConfig
from hw.oram.kernel.arguments import LOCK, SECRET_WORDS, argument_table


def test_the_lock_follows_all_secret_words():
    """Hosts write registers in ascending order: a call writes all secrets, then locks them."""
    table = argument_table(OramConfig())
    secret = [f"{name}{n}" for name, words in SECRET_WORDS.items() for n in range(words)]
    assert [argument.name for argument in table.secrets] == secret
    assert [argument.name for argument in table.arguments if argument.locks] == [LOCK]
    assert all(table.offset(name) < table.offset(LOCK) for name in secret)
    assert SECRET_WORDS == {"session_key": 4, "seed": 4, "epoch": 2}
