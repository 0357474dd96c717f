package main

import (
	"net/http"
	"slices"
)

// forOrigins serves POST requests from programs, which send no Origin, and from pages of the given origins. A page of
// another origin must not sign itself in as a local user. The refusal names the origin, so that a developer sees it in
// the browser's tools.
func forOrigins(origins []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Origin")
		if origin := r.Header.Get("Origin"); origin != "" {
			if !slices.Contains(origins, origin) {
				http.Error(w, "the origin "+origin+" is not in ALLOWED_ORIGINS", http.StatusForbidden)
				return
			}
			w.Header().Set("Access-Control-Allow-Origin", origin)
			w.Header().Set("Access-Control-Allow-Headers", "Content-Type")
		}
		switch r.Method {
		case http.MethodPost:
			next.ServeHTTP(w, r)
		case http.MethodOptions:
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Allow", "POST, OPTIONS")
			http.Error(w, "POST is required", http.StatusMethodNotAllowed)
		}
	})
}
