# Uptime checks request the console's /health and the API every minute from outside. The API must refuse a request without
# a token. The sweep, which reads and writes the database each minute, has an alert of its own.

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

resource "google_monitoring_uptime_check_config" "api" {
  for_each = local.edge

  project      = var.project_id
  display_name = "${var.prefix} API"
  timeout      = "10s"
  period       = "60s"
  http_check {
    path         = "/api/agent/threads"
    port         = 443
    use_ssl      = true
    validate_ssl = true
    accepted_response_status_codes {
      status_value = 401
    }
  }
  monitored_resource {
    type = "uptime_url"
    labels = {
      project_id = var.project_id
      host       = each.value
    }
  }
}
