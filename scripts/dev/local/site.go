package main

import (
	"github.com/countersign-run/countersign/shared/app/web"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
	site "github.com/countersign-run/countersign/shared/web"
)

// openSite returns the console. With WEB_CLIENT_ID, its users sign in by redirect, also at the local issuer.
func (s *server) openSite(cfg config.Config) (*site.Site, error) {
	own := s.env.own("AUTH_ISSUER")
	if own && cfg.WebClientID != "" {
		var redirects []string
		for _, origin := range ownOrigins(s.base) {
			redirects = append(redirects, origin+"/")
		}
		s.issuer.ServeSignIn(issuer.Client{ID: cfg.WebClientID, Redirects: redirects, SignedIn: s.signedIn})
	}
	o := web.Options(cfg)
	o.Local, o.LocalUsers = true, own
	return site.New(o)
}
