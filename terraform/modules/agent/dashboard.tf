# The dashboards of infra/dashboards.

resource "google_monitoring_dashboard" "this" {
  for_each = fileset("${local.infra}/dashboards", "*.json")

  project        = var.project_id
  dashboard_json = templatefile("${local.infra}/dashboards/${each.value}", { prefix = var.prefix, services = local.services })
}
