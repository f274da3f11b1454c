"""The admission webhook: bad models are refused when somebody applies them.

It is a help for people, no protection: the operator checks every model again before it starts
anything. So when the webhook does not work, everything is let through, and conditions say so.
"""
