package gmail

import (
	"context"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
)

// fromOf returns the address in From, or "" if it is not known.
func fromOf(c tool.Call, a Args) string {
	if a.From != "" {
		return a.From
	}
	return accountOf(c)
}

// own returns the addresses of the account that get no copy of an answer.
func own(c tool.Call, a Args) []string { return []string{accountOf(c), fromOf(c, a)} }

func normalizeSender(a *Args) (err error) {
	if a.From == "" {
		return nil
	}
	if a.From, err = address.Normalize(a.From); err != nil {
		return fault.Invalid("from", "not an e-mail address")
	}
	return nil
}

// chooseSender checks that the account can send from a.From, and leaves it empty if that is the account itself.
func (s *sender) chooseSender(ctx context.Context, c tool.Call, a Args) (Args, error) {
	if strings.EqualFold(a.From, accountOf(c)) {
		a.From = ""
	}
	if a.From == "" {
		return a, nil
	}
	listed, err := s.alias(ctx, c, a.From)
	if err == nil && listed == "" {
		err = fault.Invalid("from", "not a verified send-as address of this account; ask the user for the address, or "+
			"leave it out")
	}
	a.From = listed
	return a, err
}

// checkSender returns an error if the account can no longer send from the approved address.
func (s *sender) checkSender(ctx context.Context, c tool.Call, a Args) error {
	if a.From == "" {
		return nil
	}
	listed, err := s.alias(ctx, c, a.From)
	if err == nil && listed != a.From {
		err = fault.New(fault.Policy, fault.CodeStaleView,
			"The account can no longer send from the address that the approval showed. Nothing was sent. "+
				"Please ask for it again.")
	}
	return err
}

// alias returns the verified send-as address of the account that equals the address except for capitals, as Gmail lists
// it, or "".
func (s *sender) alias(ctx context.Context, c tool.Call, wanted string) (string, error) {
	svc, err := s.service(ctx, c)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	list, err := svc.Users.Settings.SendAs.List("me").Fields("sendAs(sendAsEmail,verificationStatus)").Context(ctx).Do()
	if err != nil {
		return "", retriable(google.Read(err), "gmail.settings.sendAs.list",
			"Gmail could not be asked for the account's send-as addresses. Nothing was sent.")
	}
	for _, one := range list.SendAs {
		listed, err := address.Normalize(one.SendAsEmail)
		if err == nil && one.VerificationStatus == "accepted" && strings.EqualFold(listed, wanted) {
			return listed, nil
		}
	}
	return "", nil
}

// check reads again what the card showed of the mailbox: the sender, and the e-mail that is answered or forwarded.
func (s *sender) check(ctx context.Context, c tool.Call, a Args) error {
	if err := s.checkSender(ctx, c, a); err != nil {
		return err
	}
	return s.checkOrigin(ctx, c, a)
}
