# One host for the page and the API: a load balancer with a backend for each public function, and the paths that lead to
# them. Without a domain, none of these resources exist.

locals {
  edge         = var.domain == null ? {} : { this = var.domain }
  behind_edge  = { for name, f in local.public : name => f if var.domain != null }
  anything     = "\\{[^}]*\\}"                  # a variable part of a path
  rest         = local.console ? "web" : "runs" # gets all other paths
  paths        = { for name, f in local.public : name => distinct([for r in f.routes : replace(r.path, "/${local.anything}/", "*")]) }
  routed       = flatten([for name, paths in local.paths : [for p in paths : { path = p, function = name }] if name != local.rest])
  sample       = merge([for name, p in local.paths : { for path in p : replace(path, "*", "x") => name }]...)
  private_path = { for r in flatten([for f in values(local.functions) : f.routes if f.callers != "everyone"]) : replace(r.path, "/${local.anything}/", "x") => local.rest }
}

resource "google_compute_region_network_endpoint_group" "function" {
  for_each = local.behind_edge

  project               = var.project_id
  region                = var.region
  name                  = "${var.prefix}-${each.key}"
  network_endpoint_type = "SERVERLESS"
  cloud_run {
    service = module.function[each.key].name
  }
}

resource "google_compute_backend_service" "function" {
  for_each = local.behind_edge

  project               = var.project_id
  name                  = "${var.prefix}-${each.key}"
  load_balancing_scheme = "EXTERNAL_MANAGED"
  protocol              = "HTTPS"
  security_policy       = google_compute_security_policy.throttle["this"].id
  backend {
    group = google_compute_region_network_endpoint_group.function[each.key].id
  }
  log_config {
    enable      = true
    sample_rate = 1.0
  }
}

resource "google_compute_url_map" "edge" {
  for_each = local.edge

  project         = var.project_id
  name            = "${var.prefix}-edge"
  default_service = google_compute_backend_service.function[local.rest].id

  host_rule {
    hosts        = [each.value]
    path_matcher = "agent"
  }
  path_matcher {
    name            = "agent"
    default_service = google_compute_backend_service.function[local.rest].id
    # One rule for each path: two functions can serve paths with a common beginning, such as terminals and their sockets.
    dynamic "route_rules" {
      for_each = local.routed
      content {
        priority = route_rules.key + 1
        service  = google_compute_backend_service.function[route_rules.value.function].id
        match_rules {
          full_path_match     = strcontains(route_rules.value.path, "*") ? null : route_rules.value.path
          path_template_match = strcontains(route_rules.value.path, "*") ? route_rules.value.path : null
        }
      }
    }
  }

  # Google rejects the map if one of these paths leads to another backend. The paths of resume and sweep lead to the
  # function that gets all other paths, which does not serve them.
  dynamic "test" {
    for_each = merge(local.sample, local.private_path)
    content {
      host    = each.value
      path    = test.key
      service = google_compute_backend_service.function[test.value].id
    }
  }
}

resource "google_compute_global_address" "edge" {
  for_each = local.edge

  project = var.project_id
  name    = "${var.prefix}-edge"
}

resource "google_compute_target_https_proxy" "edge" {
  for_each = local.edge

  project          = var.project_id
  name             = "${var.prefix}-edge"
  url_map          = google_compute_url_map.edge[each.key].id
  ssl_certificates = [google_compute_managed_ssl_certificate.edge[each.key].id]
  ssl_policy       = google_compute_ssl_policy.edge[each.key].id
}

resource "google_compute_global_forwarding_rule" "https" {
  for_each = local.edge

  project               = var.project_id
  name                  = "${var.prefix}-https"
  load_balancing_scheme = "EXTERNAL_MANAGED"
  ip_address            = google_compute_global_address.edge[each.key].id
  port_range            = "443"
  target                = google_compute_target_https_proxy.edge[each.key].id
}
