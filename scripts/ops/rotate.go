package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/notify/webpush"
)

// maxKeys is the number of keys that CHAT_KEY, ACTION_KEY and VAPID_KEY can have.
const maxKeys = 4

// rotate prints the next value of a key, and nothing else, so you can pipe the output into a secret. The new key is
// used from then on, and the earlier ones stay valid. With -retire it prints the value without the earlier keys.
//
//   - chat-key: histories that pages store stay valid for 30 days. After -retire, older ones are refused, and the
//     message says why.
//   - token-key: data that an earlier key encrypted stays readable. After -retire, users whose account was not linked,
//     or whose host was not added, since the rotation have to do so again. A key in Cloud KMS rotates itself.
//   - action-key: the endpoints must accept both keys before the new one signs.
//   - decision-key: prints DECISION_PUBLIC_KEYS with the public half of DECISION_KMS_KEY, the new version of the key.
//     All functions must have the list before that version signs. After -retire, only its signatures count.
//   - enrolment-key: the same for ENROLMENT_PUBLIC_KEYS and ENROLMENT_KMS_KEY. After -retire, users add the passkeys
//     again that the earlier key signed.
//   - webhook-keys: both keys of each endpoint sign, so an endpoint can change to the new one before -retire.
//   - vapid-key: browsers subscribe with the new key, and those that subscribed earlier are still notified. After
//     -retire, only pages that users open subscribe their browsers again.
//   - mcp-secrets: prints MCP_SECRETS with the value in the file -from for the secret -name. The MCP server must accept
//     both values until all functions have the new one.
//
// The secret of an OAuth client needs no command: Google and GitHub accept two secrets of a client at once.
func rotate(flags *flag.FlagSet) runFunc {
	retire := flags.Bool("retire", false, "remove the earlier keys instead of adding one")
	name := flags.String("name", "", "for mcp-secrets: the name of the secret")
	from := flags.String("from", "", "for mcp-secrets: the file with the secret's new value, such as /dev/stdin")
	return func(ctx context.Context, o *operator, args []string) error {
		if of, is := signingKeys[args[0]]; is {
			next, err := of.next(ctx, o.getenv, *retire)
			if err != nil {
				return err
			}
			return o.printf("%s", next)
		}
		cfg, err := config.Load(o.getenv)
		if err != nil {
			return err
		}
		var next string
		switch args[0] {
		case "chat-key":
			next, err = nextChatKey(cfg, *retire)
		case "token-key":
			next, err = nextTokenKey(cfg, *retire)
		case "action-key":
			next, err = nextKeys("ACTION_KEY", cfg.ActionKey.Reveal(), *retire)
		case "webhook-keys":
			next, err = nextWebhookKeys(cfg.WebhookKeys.Reveal(), *retire)
		case "vapid-key":
			next, err = nextVapidKey(cfg, *retire)
		case "mcp-secrets":
			next, err = nextMCPSecrets(cfg.MCPSecrets.Reveal(), *name, *from, *retire)
		default:
			err = fmt.Errorf("rotate takes chat-key, token-key, action-key, webhook-keys, vapid-key, mcp-secrets, "+
				"decision-key or enrolment-key, not %q", args[0])
		}
		if err != nil {
			return err
		}
		return o.printf("%s", next)
	}
}

func nextChatKey(cfg config.Config, retire bool) (string, error) {
	held := cfg.ChatKey.Reveal()
	if held == "" {
		key, err := os.ReadFile(filepath.Join(cfg.DataDir, app.ChatKeyFile))
		if err != nil {
			return "", errors.New("CHAT_KEY is not set, and DATA_DIR contains no chat-key")
		}
		held = base64.StdEncoding.EncodeToString(key)
	}
	return nextKeys("CHAT_KEY", held, retire)
}

// nextKeys returns the list of keys with a new one at its beginning. If the list is full, it drops the last key. With
// retire it returns only the first key.
func nextKeys(variable, held string, retire bool) (string, error) {
	fresh := make([]byte, 32)
	rand.Read(fresh)
	return listed(variable, held, base64.StdEncoding.EncodeToString(fresh), retire)
}

// listed is like nextKeys with the new key given.
func listed(variable, held, fresh string, retire bool) (string, error) {
	if held == "" {
		return "", fmt.Errorf("%s is not set", variable)
	}
	keys := strings.Split(held, ",")
	if retire {
		if len(keys) == 1 {
			return "", fmt.Errorf("%s has one key: rotate it first, and deploy the result", variable)
		}
		return strings.TrimSpace(keys[0]), nil
	}
	keys = append([]string{fresh}, keys...)
	return strings.Join(keys[:min(len(keys), maxKeys)], ","), nil
}

func nextVapidKey(cfg config.Config, retire bool) (string, error) {
	held := cfg.VapidKey.Reveal()
	if held == "" {
		return "", errors.New("VAPID_KEY is not set")
	}
	fresh, err := webpush.NewKey(rand.Reader)
	if err != nil {
		return "", err
	}
	return listed("VAPID_KEY", held, fresh, retire)
}

// maxSecret is the maximum size of a secret in a file, in bytes.
const maxSecret = 64 << 10

// nextMCPSecrets returns the secrets, with the content of the file as the value of the named one.
func nextMCPSecrets(held, name, file string, retire bool) (string, error) {
	switch {
	case retire:
		return "", errors.New("MCP_SECRETS has no earlier keys to retire: disable them at the MCP server")
	case name == "" || file == "":
		return "", errors.New("-name and -from are required: the name of the secret, and the file with its new value")
	case held == "":
		return "", errors.New("MCP_SECRETS is not set")
	}
	var secrets map[string]string
	if err := json.Unmarshal([]byte(held), &secrets); err != nil {
		return "", errors.New("MCP_SECRETS is not a JSON object of texts")
	}
	before, known := secrets[name]
	if !known {
		return "", fmt.Errorf("MCP_SECRETS has no %q", name)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	switch value := strings.TrimSpace(string(content)); {
	case value == "" || len(value) > maxSecret:
		return "", fmt.Errorf("-from: the file is empty or has more than %d bytes", maxSecret)
	case value == before:
		return "", fmt.Errorf("-from: MCP_SECRETS already has this value for %q", name)
	default:
		secrets[name] = value
	}
	next, err := json.Marshal(secrets)
	return string(next), err
}

// nextWebhookKeys returns the keys of all endpoints, with a new key at the beginning of each list. With retire it
// returns only the first key of each list. An endpoint has at most two keys.
func nextWebhookKeys(held string, retire bool) (string, error) {
	if held == "" {
		return "", errors.New("WEBHOOK_KEYS is not set")
	}
	var keys map[string][]string
	if err := json.Unmarshal([]byte(held), &keys); err != nil {
		return "", errors.New("WEBHOOK_KEYS is not a JSON object of lists of keys")
	}
	for name, list := range keys {
		if !retire {
			fresh := make([]byte, 32)
			rand.Read(fresh)
			list = append([]string{"whsec_" + base64.StdEncoding.EncodeToString(fresh)}, list...)
		}
		keys[name] = list[:min(len(list), map[bool]int{false: 2, true: 1}[retire])]
	}
	next, err := json.Marshal(keys)
	return string(next), err
}

func nextTokenKey(cfg config.Config, retire bool) (string, error) {
	if cfg.TokenKMSKey != "" {
		return "", errors.New("TOKEN_KMS_KEY is set: Cloud KMS rotates this key, and its earlier versions decrypt")
	}
	held := cfg.TokenKey.Reveal()
	if held == "" {
		text, err := os.ReadFile(filepath.Join(cfg.DataDir, tokenkey.File))
		if err != nil {
			return "", fmt.Errorf("TOKEN_KEY is not set, and DATA_DIR contains no %s", tokenkey.File)
		}
		held = string(text)
	}
	if retire {
		return tokenkey.Retire(held)
	}
	return tokenkey.Rotate(held)
}
