"""Serve a GGUF file with the HTTP server of llama.cpp: llama_server.py FILE PORT CONTEXT. Needs xllamacpp.

One slot: with more, llama.cpp does not repeat itself, because the batch changes the rounding.
"""

import sys
import time

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames, params.port, params.n_ctx = ["127.0.0.1"], int(sys.argv[2]), int(sys.argv[3])
params.n_parallel = 1
params.cpuparams.n_threads = 1
params.use_jinja = params.endpoint_metrics = True
server = xllamacpp.Server(params)
while server.listening_address:
    time.sleep(60)
