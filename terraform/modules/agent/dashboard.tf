# The dashboards in infra/dashboards. The dashboard of metrics exists only if metrics are on.

resource "google_monitoring_dashboard" "this" {
  for_each = setsubtract(fileset("${local.infra}/dashboards", "*.json"), var.metrics ? [] : ["runs.json"])

  project        = var.project_id
  dashboard_json = templatefile("${local.infra}/dashboards/${each.value}", { prefix = var.prefix, services = local.services })
}
