# The bucket of Terraform's state. Without the state, the resources cannot be changed or destroyed. Google refuses to delete a
# bucket that is not empty.

resource "google_storage_bucket" "state" {
  project                     = var.project_id
  name                        = "${var.project_id}-tfstate"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  versioning {
    enabled = true
  }
  lifecycle_rule {
    action {
      type = "Delete"
    }
    condition {
      num_newer_versions         = 50
      days_since_noncurrent_time = 90
    }
  }
  depends_on = [google_project_service.this]
}
