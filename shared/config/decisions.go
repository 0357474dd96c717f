package config

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

const decisionKeys = "1 to 50 public Ed25519 keys in PEM, or their DER in base64 with commas between them, as `ops " +
	"rotate decision-key` prints it"

const enrolmentKeys = "1 to 50 public Ed25519 keys in PEM, or their DER in base64 with commas between them, as `ops " +
	"rotate enrolment-key` prints it"

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
	l.strong(c, signs)
	l.require(keys && c.Store == "embedded", "DECISION_KMS_KEY", receiptKMS+", because DECISION_PUBLIC_KEYS is set")
}

// strong reads which decisions need a passkey, and the keys that sign and check passkeys.
func (l *loader) strong(c *Config, signed bool) {
	const file = "a YAML file of rules (terraform/options.md, *Passkeys*)"
	const console = "the address of the console with a domain, not an IP address, such as " +
		"https://agent.example.com or http://localhost:8080: browsers bind a passkey to it"
	c.StrongApproval = l.text("STRONG_APPROVAL", "", file, isPath)
	c.EnrolmentKMSKey = l.text("ENROLMENT_KMS_KEY", "", receiptKMS, isKMSVersion)
	c.EnrolmentPublicKeys = l.text("ENROLMENT_PUBLIC_KEYS", "", enrolmentKeys, func(v string) bool {
		_, err := decision.ParseKeys(v)
		return err == nil
	})
	set := c.StrongApproval != ""
	l.require(set && c.ConsoleURL == "", "CONSOLE_URL", console)
	u, err := url.Parse(c.ConsoleURL)
	if set && c.ConsoleURL != "" && (err != nil || net.ParseIP(u.Hostname()) != nil) {
		l.fail("CONSOLE_URL", show(c.ConsoleURL, false), console)
	}
	l.require(set && c.Store != "embedded" || c.EnrolmentKMSKey != "", "ENROLMENT_PUBLIC_KEYS", enrolmentKeys)
	l.refuse(!signed, "STRONG_APPROVAL", "DECISIONS to be sign or require, or to be unset")
}

var verifierKey = lazyregexp.New(`^[^\s+,]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]+=*$`)

// areVerifierKeys reports whether v has the form of verifier keys of notes (C2SP signed-note), with commas between
// them. Package translog, which checks them, is not linked into every function.
func areVerifierKeys(v string) bool {
	keys := strings.Split(v, ",")
	return len(keys) <= 50 && !slices.ContainsFunc(keys, func(one string) bool {
		return !verifierKey.MatchString(strings.TrimSpace(one))
	})
}
