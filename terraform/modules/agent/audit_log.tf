# The audit's chain is in the database. The functions' log lines about it, and accesses to secrets, keys and data, are
# kept here, independently of the database.

resource "google_logging_project_bucket_config" "audit" {
  project          = var.project_id
  location         = var.region
  bucket_id        = "${var.prefix}-audit"
  retention_days   = var.audit_log.retention_days
  locked           = var.audit_log.locked
  enable_analytics = true
}

resource "google_logging_project_sink" "audit" {
  project                = var.project_id
  name                   = "${var.prefix}-audit"
  destination            = "logging.googleapis.com/${google_logging_project_bucket_config.audit.id}"
  filter                 = "log_id(\"cloudaudit.googleapis.com/activity\") OR log_id(\"cloudaudit.googleapis.com/data_access\") OR (resource.type=\"cloud_run_revision\" AND resource.labels.service_name=~\"^${local.services}$\" AND severity>=INFO)"
  unique_writer_identity = true
}

resource "google_project_iam_audit_config" "data_access" {
  for_each = toset(["secretmanager.googleapis.com", "cloudkms.googleapis.com", "datastore.googleapis.com"])

  project = var.project_id
  service = each.value
  audit_log_config {
    log_type = "DATA_READ"
  }
  audit_log_config {
    log_type = "DATA_WRITE"
  }
}

# The lines of the audit's bucket that no alert looks for are not stored in _Default again: accesses by programs, and the
# functions' lines that are no warnings.
resource "google_logging_project_exclusion" "kept" {
  for_each = {
    accesses = "log_id(\"cloudaudit.googleapis.com/data_access\") AND ${local.principal}\"gserviceaccount.com$\""
    lines    = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=~\"^${local.services}$\" AND severity=INFO"
  }

  project     = var.project_id
  name        = "${var.prefix}-${each.key}"
  description = "The sink ${google_logging_project_sink.audit.name} keeps these lines."
  filter      = each.value
}
