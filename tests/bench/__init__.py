"""The measurements, run by hand; may not be collected as tests."""
