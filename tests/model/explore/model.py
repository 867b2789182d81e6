"""What every model is: a start state, the steps out of a state, and the promises that each state keeps."""


class Violation(Exception):
    """A state or a step breaks a promise. `promise` is its name in README.md: "P1"."""

    def __init__(self, promise, text, *arguments):
        super().__init__("%s: %s" % (promise, text % arguments if arguments else text))
        self.promise = promise


class Model:
    """The base of the models. A model holds parameters and no state.

    A state is a tuple of parts. Each part is hashable, and rests on values alone, so that equal
    states are one state. PARAMETERS names what a configuration may change: sizes, how many faults
    of each kind happen at most, and one flag for each rule, which is True unless a run drops it.
    """

    PARAMETERS = {}
    CHOICES = {}  # of a parameter that is a word, those that it may be

    def __init__(self, **changes):
        unknown = sorted(set(changes) - set(self.PARAMETERS))
        if unknown:
            raise ValueError("%s has no parameter %s; it has %s" % (
                type(self).__name__, ", ".join(unknown), ", ".join(sorted(self.PARAMETERS))))
        for name, choices in self.CHOICES.items():
            if changes.get(name, choices[0]) not in choices:
                raise ValueError("%s=%s: say %s" % (name, changes[name], " or ".join(choices)))
        self.__dict__.update(self.PARAMETERS, **changes)
        self.notes = set()

    def note(self, text):
        """Remembers that something worth telling happens in some state."""
        self.notes.add(text)

    def start(self):
        """The start state."""
        raise NotImplementedError

    def check(self, state):
        """Raises Violation where a state breaks a promise."""

    def done(self, state):
        """Whether training has ended."""
        raise NotImplementedError

    def steps(self, state):
        """[(text, arguments, is_fault, state)]: every step out of a state.

        `text % arguments` says what happens; few of them are ever read. The order is part of the
        model: it decides which of several shortest traces is shown. Raises Violation where a step
        breaks a promise.
        """
        raise NotImplementedError

    def canonical(self, state):
        """The one of several states alike that stands for all of them."""
        return state


class Memo(dict):
    """Remembers a function of one value: many states share a part, and few parts differ."""

    def __init__(self, function):
        super().__init__()
        self._function = function

    def __missing__(self, value):
        result = self[value] = self._function(value)
        return result
