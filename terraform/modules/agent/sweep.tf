# The sweep looks for interrupted work every minute.

resource "google_service_account" "scheduler" {
  project      = var.project_id
  account_id   = "${var.prefix}-scheduler"
  display_name = "Countersign: the scheduler's calls of sweep"
}

resource "google_cloud_scheduler_job" "sweep" {
  project          = var.project_id
  region           = var.region
  name             = "${var.prefix}-sweep"
  description      = "Publishes resumes for lapsed leases, lost resumes and expired approvals"
  schedule         = "* * * * *"
  time_zone        = "Etc/UTC"
  attempt_deadline = "${local.functions["sweep"].timeoutSeconds}s"

  retry_config {
    retry_count = 0 # the next minute is the retry
  }
  http_target {
    http_method = "POST"
    uri         = module.function["sweep"].uri
    oidc_token {
      service_account_email = google_service_account.scheduler.email
      audience              = module.function["sweep"].uri
    }
  }
}
