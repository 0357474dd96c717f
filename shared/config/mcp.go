package config

import "encoding/json"

// mcp reads the URL of /mcp and the issuer of access tokens for it.
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

// servers reads the path of the file of MCP servers, and the secrets that it refers to.
func (l *loader) servers(c *Config) {
	const secrets = "a JSON object of texts by their names, such as {\"GITHUB_MCP_TOKEN\": \"…\"}"
	c.MCPServers = l.text("MCP_SERVERS", "", "a file in the form {\"mcpServers\": {…}}", isPath)
	c.MCPSecrets = l.braced("MCP_SECRETS", secrets, func(v string) bool {
		_, err := decodeSecrets(v)
		return err == nil
	})
}

func decodeSecrets(text string) (secrets map[string]string, err error) {
	err = json.Unmarshal([]byte(text), &secrets)
	return secrets, err
}

// Referenced returns the value of ${name} in the file of MCP servers, or "". It comes from MCP_SECRETS, or from the
// environment if MCP_SECRETS is not set.
func (c Config) Referenced(name string) string {
	if !c.MCPSecrets.IsSet() {
		if c.environment == nil {
			return ""
		}
		return c.environment(name)
	}
	secrets, err := decodeSecrets(c.MCPSecrets.Reveal())
	if err != nil { // already validated
		return ""
	}
	return secrets[name]
}
