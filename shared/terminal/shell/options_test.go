package shell_test

import (
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/shell"
)

// runners are commands in which an option, an operand or a configuration names another program.
const runners = `
split --filter='touch X' f
split --filt='touch X' f
sort --compress-program=x f
sort --compress-prog x f
tar cf x --checkpoint=1 --checkpoint-action=exec=x f
tar --checkpoint-action=exec=x -cf x f
tar --to-command=x -xf f
tar --to-com=x -xf f
tar -I x -xf f
tar cIf x f g
tar xIf x f
tar -xvIx -f f
tar --use-compress-program=x -xf f
tar --use-compress x -xf f
tar --rsh-command=x -cf h:f f
tar -F x -cf f f
tar --files-from=f -cf f
tar -Tf -cf f
tar czf f.tgz *
rsync -e x a b:
rsync --rsh=x a b:
rsync --rsync-path=x a b:
rsync -avz a h:b
find . -exec x {} +
find . -execdir x {} +
find . -ok x {} +
find -- . -exec x {} +
find $x
xargs x
git -c core.fsmonitor=x status
git -c core.pager=x log
git log --ext-diff
git clone ext::x
git clone --upload-pack=x a b
git fetch --upload-pa=x a
git push --receive-pack=x a
git status
git difftool -x x
git grep -Ox y
git rebase --exec x
git submodule foreach x
ssh -o ProxyCommand=x h
scp -S x a h:b
sftp -S x h
zip -TT x f g
zip -rTT x f g
zip -T --unzip-command=x f g
man -P x ls
man --pager=x ls
less f
more f
vim -c '!x' f
vi -S x
ex -sc '!x' f
emacs --eval x
awk 'BEGIN{system("x")}'
sed 1ex f
sed --expression=1ex f
sed -f x f
env x
nice x
timeout 1 x
watch x
parallel x
flock f x
script -c x
su -c x
sudo x
make
make SHELL=x
crontab f
at now
batch
systemd-run x
nohup x
setsid x
dpkg --pre-invoke=x -i f
apt-get -o DPkg::Pre-Invoke::=x install a
apt -oDPkg::Post-Invoke::=x update
apt-get -c f update
curl --config f
curl -K f
curl -sK f
wget --use-askpass=x u
wget -e use_askpass=x u
tcpdump -i a -z x -w f -G 1
nmap --script x h
openssl req -engine x
gdb -ex 'shell x'
perl -e x
python3 -c x
ruby -e x
node -e x
php -r x
lua -e x
busybox touch x
docker exec c x
docker run i x
kubectl exec p -- x
podman run i
ip netns exec a x
ip -b f
ip vrf exec a x
systemctl edit a
systemctl -H h restart a
journalctl -M c
install -s --strip-program=x a b
install --strip-prog=x a b
diff3 --diff-program=x a b c
sdiff --diff-program=x a b
dmesg -H
sysctl -w kernel.core_pattern='|x'
iptables --modprobe=x -L
ssh-keygen -D x
mapfile -C x a
readarray -c 1 -C x a
compgen -C x
complete -C x a
trap x EXIT
mutt -e x
mail -S x a
gpg --photo-viewer x
rename 's/x/system(1)/e' f
patch -e f
service ../x start
ansible all -m shell
npm run x
npx x
cargo run
go run x
go test -exec x
mvn exec:exec
gradle x
java -jar x
strace x
ltrace x
valgrind x
unshare x
chroot a x
nsenter x
start-stop-daemon --start --exec x
logrotate f
run-parts a
entr x
expect f
socat EXEC:x -
nc -e x h 1
ncat -c x h 1
tclsh f
psql -c '\! x'
sqlite3 f '.shell x'
mysql -e '\! x'
ftp h
pv x
./check.sh
/tmp/ls
make-it
/home/u/evil/touch a
TAR_OPTIONS=--to-command=x tar xf f
TAPE=h:f tar x
MAGIC=x file f
DBUS_SYSTEM_BUS_ADDRESS=unixexec:path=./x systemctl restart a
export DBUS_SESSION_BUS_ADDRESS=unixexec:path=./x
printf -v PATH %s .
printf -vPATH %s .
printf $x
read -r PATH
read -aPATH
read "$x"
mapfile -t PATH
readarray PATH
getopts a PATH
wait -p PATH
unset PATH
unset "$x"
for PATH in .; do ls; done
select PATH in .; do ls; done
ls {PATH}>f
: ${PATH:=.}
echo "${LD_PRELOAD=./x.so}"
((PATH = 1))
let PATH=1
export 'PATH=.'
export "LD_PRELOAD=./x.so"
readonly 'BASH_ENV=x'
declare -x "PATH=."
typeset 'PATH=.'
f() { local 'PATH=.'; ls; }
export "$x"
declare -n a=PATH
declare -i a=b
typeset -i a
a='b[$(x)]'; ((a))
a='b[$(x)]'; echo $((a + 1))
a='b[$(x)]'; echo $[a]
a='b[$(x)]'; let a
a='b[$(x)]'; [[ a -eq 1 ]]
a='b[$(x)]'; [[ 1 -lt 'a' ]]
a='b[$(x)]'; echo ${c:a:1}
a='b[$(x)]'; echo ${c[a]}
a='b[$(x)]'; c[a]=1
a='b[$(x)]'; c=([a]=1)
for ((i = 0; i < 2; i++)); do i='b[$(x)]'; ((i)); done
for ((i = 0; i < 2; i++)); do read i; ((i)); done
for ((i = 0; i < 2; i++)); do ls; done; ((i))
false && for ((i = 0; ; )); do ls; done; ((i))
test -v "$a"
[ -v "$a" ]
compgen -W '$(x)'
jobs -x touch f
tar xf h:f
tar -cf h.example.com:/f a
tar --file=h:f -x
dpkg -i a.deb
dpkg --unpack a.deb
dpkg --root=a -r b
apt install ./a.deb
apt-get install -y /tmp/a.deb
systemctl enable ./a.service
systemctl link /tmp/a.service
systemctl --user start ../a.service
systemctl set-environment LD_PRELOAD=x
systemctl import-environment
systemctl set-property a b=c
systemctl switch-root /x
curl --unix-socket /var/run/docker.sock http://x/containers/create
curl --cert pkcs11:x u
curl --ntlm-wb u
ip link set dev a xdp obj ./x.o
ip link set dev a xdpgeneric obj ./x.o
RSYNC_RSH=x ls
MANPAGER=x ls
SYSTEMD_EDITOR=x ls
XDG_CONFIG_HOME=x ls
APT_CONFIG=x ls
touch --frobnicate a
ls --frobnicate
`

// A command that may run a program of another name is opaque: by a known way, or because its program or an option is
// not known.
func TestRunnersAreOpaque(t *testing.T) {
	for command := range strings.Lines(strings.TrimSpace(runners)) {
		command = strings.TrimSpace(command)
		j, err := shell.Judge(command, shell.Bash)
		if err != nil || !j.Has(shell.Opaque) {
			t.Errorf("%s: %s, %v", command, j.Class, err)
		}
	}
}

// TestRunnersOfSh has commands that some shells evaluate, where only the standard's grammar is known.
func TestRunnersOfSh(t *testing.T) {
	for _, command := range []string{"let x", "declare PATH=.", "typeset 'PATH=.'", "test x -eq 1", `[ "$x" -lt 1 ]`,
		"local PATH=.", "read PATH", "compgen -W x"} {
		if j, err := shell.Judge(command, shell.POSIX); err != nil || !j.Has(shell.Opaque) {
			t.Errorf("%s: %s, %v", command, j.Class, err)
		}
	}
	if j, err := shell.Judge("touch a && [ 2 -eq 1 ]", shell.POSIX); err != nil || j.Has(shell.Opaque) {
		t.Errorf("numbers: %+v, %v", j.Warnings, err)
	}
}

// known are commands whose programs and options are all known.
const known = `
touch a
mkdir -p a/b
mv -n a b
chmod 644 a
chown -v root:root a
sort -t, -k2,2n -u f
head -n -5 f
split -b 10M -d f part
tar xzf a.tgz
tar -czvf a.tgz --exclude=b c
tar --extract --file a.tar -C d
unzip -o a.zip -d b
zip -r a.zip b
find . -name '*.log' -mtime +7 -print
grep -rn --include='*.go' x .
diff -ruN a b
curl -sSfL -o f https://example.com
systemctl restart nginx
systemctl status nginx --no-pager
journalctl -u nginx -n 50 --no-pager
apt-get update
apt-get install -y --no-install-recommends htop
ip addr add 10.0.0.1/8 dev a
ip -brief address
ss -tulpn
ps -eo pid,cmd
df -h
useradd -m -s /bin/bash a
wc -l f
cut -d: -f1 f
tr a-z A-Z
date +%s
/usr/bin/touch a
test -f a
[ -f a ]
printf '%s\n' a
cd /srv
export A=b
export -n A
unset A
read -p 'Name: ' a
printf '%s\n' "$a"
for ((i = 0; i < 3; i++)); do echo ${a[i]}; done
for i in 1 2; do ls $i; done
echo ${a[1]} ${a[@]} ${a:1:2} $((1 + 2))
[[ a == b ]]
[ "$a" -eq 1 ]
tar xf ./a:b
tar --force-local -xf a:b
apt install nginx
apt-get install nginx/stable
touch $x
gzip -9 f
kill -l
echo -n a
sed -n 1,5p f
jq -r .a f
ping -c 1 h
tee -a f
sha256sum -c f
`

// Known commands are not called opaque.
func TestOpaqueNotForKnown(t *testing.T) {
	for command := range strings.Lines(strings.TrimSpace(known)) {
		command = strings.TrimSpace(command)
		j, err := shell.Judge(command, shell.Bash)
		if err != nil || j.Has(shell.Opaque) {
			t.Errorf("%s: %+v, %v", command, j.Warnings, err)
		}
	}
}

// Warnings of destruction are there where something is destroyed, and nowhere else.
func TestDestruction(t *testing.T) {
	for command := range strings.Lines(`aws ec2 terminate-instances --instance-ids i-1
		aws s3 rb s3://b
		az group delete --name x
		gcloud compute instances delete a
		rails db:drop
		bundle exec rails db:reset
		mix ecto.drop
		php artisan migrate:fresh
		python3 manage.py flush
		xbps-remove x
		opkg remove x
		qm destroy 100
		pct destroy 100
		heroku apps:destroy a
		gh repo delete a
		rabbitmqctl delete_queue a
		kafka-topics --delete --topic a
		redis-cli FLUSHALL
		psql -c 'DROP TABLE a'
		mongosh --eval 'db.dropDatabase()'
		btrfs subvolume delete a
		git branch --delete x
		git branch -d x
		git branch --del x
		git push origin :x
		git push origin +x
		git tag --delete x
		git switch --discard-changes a
		git update-ref -d a
		fdisk /dev/sda
		wipefs -a /dev/sda
		kill -9 1
		kill 1
		fuser -k /x
		fuser -vk /x
		chage -E 0 a
		rsync -a --delete a b
		rsync -a --delete --exclude -n a b
		git clean -fd
		ip link delete a
		passwd -d a
		shutdown now`) {
		command = strings.TrimSpace(command)
		if j, err := shell.Judge(command, shell.Bash); err != nil || !j.Has(shell.Destructive) {
			t.Errorf("%s: no warning, %v", command, err)
		}
	}
	for command := range strings.Lines(`ip -brief address
		ip -f inet addr
		fdisk -l
		sfdisk --dump /dev/sda
		parted -l
		chage --list a
		chage -l a
		passwd -S a
		kill -l
		kill -0 1
		killall -l
		fuser -v /x
		wipefs /dev/sda
		hdparm -I /dev/sda
		mdadm --detail /dev/md0
		tune2fs -l /dev/sda1
		rsync -avn --delete a b
		rsync --dry-run --delete a b
		git clean -nd
		apt-get -s remove a
		shutdown -c
		visudo -c
		rm --help
		aws ec2 describe-instances
		az group list
		gh issue list
		mytool /srv/remove/x
		docker run --rm i
		kubectl get pods`) {
		command = strings.TrimSpace(command)
		if j, err := shell.Judge(command, shell.Bash); err != nil || j.Has(shell.Destructive) {
			t.Errorf("%s: %+v, %v", command, j.Warnings, err)
		}
	}
}
