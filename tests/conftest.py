"""What holds for all tests."""

from hypothesis import settings

# A test asserts no time: on a busy machine an example of a millisecond takes half a second.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
