"""What an operator looks at: alarms and dashboards, made from the catalogue of metrics."""
