# HTTP only redirects to HTTPS.

resource "google_compute_url_map" "redirect" {
  for_each = local.edge

  project = var.project_id
  name    = "${var.prefix}-redirect"
  default_url_redirect {
    https_redirect         = true
    strip_query            = false
    redirect_response_code = "MOVED_PERMANENTLY_DEFAULT"
  }
}

resource "google_compute_target_http_proxy" "redirect" {
  for_each = local.edge

  project = var.project_id
  name    = "${var.prefix}-redirect"
  url_map = google_compute_url_map.redirect[each.key].id
}

resource "google_compute_global_forwarding_rule" "http" {
  for_each = local.edge

  project               = var.project_id
  name                  = "${var.prefix}-http"
  load_balancing_scheme = "EXTERNAL_MANAGED"
  ip_address            = google_compute_global_address.edge[each.key].id
  port_range            = "80"
  target                = google_compute_target_http_proxy.redirect[each.key].id
}
