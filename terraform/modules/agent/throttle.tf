# The limit of requests a minute from one address. The functions enforce the limits of each user.

resource "google_compute_security_policy" "throttle" {
  for_each = local.edge

  project = var.project_id
  name    = "${var.prefix}-throttle"

  rule {
    action      = "throttle"
    priority    = 1000
    description = "${var.requests_per_minute} requests a minute from one address"
    match {
      versioned_expr = "SRC_IPS_V1"
      config {
        src_ip_ranges = ["*"]
      }
    }
    rate_limit_options {
      conform_action = "allow"
      exceed_action  = "deny(429)"
      enforce_on_key = "IP"
      rate_limit_threshold {
        count        = var.requests_per_minute
        interval_sec = 60
      }
    }
  }
  rule {
    action      = "allow"
    priority    = 2147483647
    description = "the default rule that ends every policy"
    match {
      versioned_expr = "SRC_IPS_V1"
      config {
        src_ip_ranges = ["*"]
      }
    }
  }
}
