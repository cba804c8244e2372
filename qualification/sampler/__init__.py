"""The telemetry process: what runs beside a qualification and samples the subject, the machine and the accelerators."""
