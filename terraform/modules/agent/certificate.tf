# Google issues and renews the certificate once the domain's A record has the load balancer's address.

resource "google_compute_managed_ssl_certificate" "edge" {
  for_each = local.edge

  project = var.project_id
  name    = "${var.prefix}-${substr(sha256(each.value), 0, 8)}"
  managed {
    domains = [each.value]
  }
  lifecycle {
    create_before_destroy = true
  }
}

resource "google_compute_ssl_policy" "edge" {
  for_each = local.edge

  project         = var.project_id
  name            = "${var.prefix}-edge"
  profile         = "MODERN"
  min_tls_version = "TLS_1_2"
}
