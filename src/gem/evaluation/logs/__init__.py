"""Logs of runs for other programs: TensorBoard, Weights & Biases, Trackio, and OpenTelemetry collectors.

The files in the folder of a run remain its record, and what people read of it is in report and viewer.
"""
