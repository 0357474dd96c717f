package main

import (
	"net/http"
	"slices"
)

// forOrigins serves POST to programs, which send no Origin, and to pages of these origins: a page of another one must
// not sign itself in as a local user. The refusal names the origin, for readers of the browser's developer tools.
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
			http.Error(w, "POST is needed", http.StatusMethodNotAllowed)
		}
	})
}
