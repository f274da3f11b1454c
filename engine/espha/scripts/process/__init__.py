"""The process that a Python script lives in; started by `espha.scripts.python`.

It needs the standard library and this package, nothing else of the engine. A line of JSON comes in
on standard input, a line of JSON goes out on standard output.

What keeps a script in:
1. Nothing is inherited: no environment, no descriptors beyond the three standard ones.
2. Limits of the kernel: memory, no new descriptors, no files, and processor time for each call.
3. An audit hook, which a script cannot take away: after the start every operation that Python
   reports (opening, sockets, processes, importing, ctypes …) is refused unless it is listed in
   `confinement`.
4. Few builtins, few modules, and of these only what depends neither on time nor on chance.

This stops mistakes and simple malice. It is no wall against somebody who looks for holes in the
interpreter: whoever writes a model is trusted as much as this process can do.
"""
