"""What a question asks of its answer: a form, an order, units, an accuracy, and what the words of an answer say.

:mod:`~gem.graders.math.question` reads the question; here its text meets the answer. ``forms`` checks that the answer
has the asked form, such as a simplified fraction or a factored polynomial, and does not copy the question. ``order``
arranges the items of an answer as the question names them, and ``quantities`` gives a bare number the asked unit and
finds the asked accuracy. ``readings`` pairs what an answer says in words with what the gold answer says, sentence by
sentence.

Read pieces first, then sentences and readings; forms, order and quantities stand alone.
"""
