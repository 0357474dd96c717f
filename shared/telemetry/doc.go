// Package telemetry groups the packages that make a process observable for operators.
//   - obs writes logs with the fields of Cloud Logging.
//   - metrics records measurements, and its package otlp sends them to a collector.
//   - traces sends OpenTelemetry spans of runs to a collector.
package telemetry
