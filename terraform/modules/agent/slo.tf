# 99.5 % of the requests to public functions are answered without a server error, over 28 days.

locals {
  requests = "metric.type=\"run.googleapis.com/request_count\" AND resource.type=\"cloud_run_revision\" AND resource.labels.service_name=monitoring.regex.full_match(\"${local.services}\")"
  faults   = "${local.requests} AND metric.labels.response_code_class=\"5xx\""
}

resource "google_monitoring_custom_service" "agent" {
  project      = var.project_id
  service_id   = "${var.prefix}-api"
  display_name = "Countersign"
}

resource "google_monitoring_slo" "availability" {
  project             = var.project_id
  service             = google_monitoring_custom_service.agent.service_id
  slo_id              = "availability"
  display_name        = "99.5 % of requests are not 5xx over 28 days"
  goal                = 0.995
  rolling_period_days = 28
  request_based_sli {
    good_total_ratio {
      total_service_filter = local.requests
      bad_service_filter   = local.faults
    }
  }
}
