# The identity that builds the functions. Since 2024 a new project's default identity has no rights. This one reads archives
# and writes logs here; the environment lets it write images.

resource "google_service_account" "build" {
  project      = var.project_id
  account_id   = "${var.prefix}-build"
  display_name = "Countersign: builds the functions"
  depends_on   = [google_project_service.this]
}

resource "google_project_iam_member" "build_logs" {
  project = var.project_id
  role    = "roles/logging.logWriter"
  member  = google_service_account.build.member
}

# Only the archives, because the project also holds the state.
resource "google_project_iam_member" "build_sources" {
  project = var.project_id
  role    = "roles/storage.objectViewer"
  member  = google_service_account.build.member
  condition {
    title      = "archives only"
    expression = join(" || ", [for b in ["gcf-v2-sources-", "${var.project_id}-${var.prefix}-source/"] : "resource.name.startsWith('projects/_/buckets/${b}')"])
  }
}
