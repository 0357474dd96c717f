package config

import "github.com/countersign-run/countersign/shared/agent/decision"

const decisionKeys = "1 to 50 public Ed25519 keys in PEM, or their DER in base64 with commas between them, as `ops " +
	"rotate decision-key` prints it"

// decisions reads whether decisions are signed, and the keys that sign and check them.
func (l *loader) decisions(c *Config) {
	c.DecisionKMSKey = l.text("DECISION_KMS_KEY", "", receiptKMS, isKMSVersion)
	c.DecisionPublicKeys = l.text("DECISION_PUBLIC_KEYS", "", decisionKeys, func(v string) bool {
		_, err := decision.ParseKeys(v)
		return err == nil
	})
	c.DecisionsURL = l.text("DECISIONS_URL", "", "the address of approvals-resolve, such as https://agent.example.com "+
		"(http only on a loopback address)", isBase(l.deployed))
	mode, keys := "require", l.get("DECISION_PUBLIC_KEYS") != ""
	if c.Store != "embedded" && !keys {
		mode = "off"
	}
	c.Decisions = l.oneOf("DECISIONS", mode, "off", "sign", "require")
	signs := c.Decisions == "sign" || c.Decisions == "require"
	l.require(c.DecisionKMSKey != "" || c.Store != "embedded" && signs, "DECISION_PUBLIC_KEYS",
		decisionKeys)
	l.require(keys && c.Store == "embedded", "DECISION_KMS_KEY", receiptKMS+", because DECISION_PUBLIC_KEYS is set")
}
