package config

import "strings"

func (l *loader) github(c *Config) {
	const id = "the client id of a GitHub App, such as Iv23liAbCdEf01234567"
	const secret = "a client secret of that GitHub App"
	const token = "a token of GitHub's for the user of GITHUB_TOKEN_USER"
	const user = "the uid of the one user whom GITHUB_TOKEN serves"
	c.GitHubClientID = l.text("GITHUB_CLIENT_ID", "", id, isExact)
	c.GitHubClientSecret = l.secret("GITHUB_CLIENT_SECRET", secret, isKey)
	at := func(name, def string) string {
		return strings.TrimRight(l.text(name, def, base, isBase(l.deployed)), "/")
	}
	c.GitHubURL = at("GITHUB_URL", "https://github.com")
	c.GitHubAPIURL = at("GITHUB_API_URL", "https://api.github.com")
	c.GitHubToken = l.secret("GITHUB_TOKEN", token, isKey)
	c.GitHubTokenUser = l.text("GITHUB_TOKEN_USER", "", user, isExact)
	l.require(l.get("GITHUB_CLIENT_SECRET") != "", "GITHUB_CLIENT_ID", id)
	l.require(l.get("GITHUB_CLIENT_ID") != "", "GITHUB_CLIENT_SECRET", secret)
	l.require(l.deployed && l.get("GITHUB_CLIENT_ID") != "" && l.get("TOKEN_KMS_KEY") == "", "TOKEN_KEY",
		"a Tink keyset that encrypts users' tokens, or TOKEN_KMS_KEY in its place")
	l.require(!l.deployed && l.get("GITHUB_TOKEN_USER") != "", "GITHUB_TOKEN", token)
	const local = "to be unset where K_SERVICE is set: one token must not serve a deployment"
	l.refuse(l.deployed, "GITHUB_TOKEN", local)
	l.refuse(l.deployed, "GITHUB_TOKEN_USER", local)
}
