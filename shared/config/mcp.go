package config

// mcp reads who agents of other programs are, and where they ask.
func (l *loader) mcp(c *Config) {
	const address = "the address of /mcp that clients see, such as https://agent.example.com/mcp (http only on a " +
		"loopback address), without a query"
	const issuer = "the issuer of agents' access tokens, such as https://login.example.com (http only on a loopback " +
		"address, and not where K_SERVICE is set), which needs PUBLIC_URL or MCP_URL"
	c.MCPURL = l.text("MCP_URL", "", address, isBase(l.deployed))
	if c.MCPURL == "" && c.PublicURL != "" {
		c.MCPURL = c.PublicURL + "/mcp"
	}
	c.MCPIssuer = l.text("MCP_ISSUER", "", issuer,
		func(v string) bool { return isBase(l.deployed)(v) && c.MCPURL != "" })
}
