# An uptime check requests the console's /health every minute from outside.

resource "google_monitoring_uptime_check_config" "health" {
  for_each = local.edge

  project      = var.project_id
  display_name = "${var.prefix} health"
  timeout      = "10s"
  period       = "60s"
  http_check {
    path         = "/health"
    port         = 443
    use_ssl      = true
    validate_ssl = true
  }
  monitored_resource {
    type = "uptime_url"
    labels = {
      project_id = var.project_id
      host       = each.value
    }
  }
}
