"""Microbenchmarks: kernels made with our own assembler, run through `sassay.runtime`, their results as data.

`kernel` makes a kernel of a snippet of SASS, `measure` asks a question with several of them, `probes` lists the pairs of instructions,
`suites` runs many questions and writes the answers. `sassay bench` is its command.
"""
