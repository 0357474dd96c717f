# The dashboards of infra/dashboards; that of what runs measure themselves is there where they do.

resource "google_monitoring_dashboard" "this" {
  for_each = setsubtract(fileset("${local.infra}/dashboards", "*.json"), var.metrics ? [] : ["runs.json"])

  project        = var.project_id
  dashboard_json = templatefile("${local.infra}/dashboards/${each.value}", { prefix = var.prefix, services = local.services })
}
