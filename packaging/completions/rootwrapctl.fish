# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_rootwrapctl_global_optspecs
    string join \n socket= json h/help V/version
end

function __fish_rootwrapctl_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_rootwrapctl_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_rootwrapctl_using_subcommand
    set -l cmd (__fish_rootwrapctl_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c rootwrapctl -n "__fish_rootwrapctl_needs_command" -l socket -d 'Socket of the service' -r -F
complete -c rootwrapctl -n "__fish_rootwrapctl_needs_command" -l json -d 'Print one JSON document instead of text'
complete -c rootwrapctl -n "__fish_rootwrapctl_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rootwrapctl -n "__fish_rootwrapctl_needs_command" -s V -l version -d 'Print version'
complete -c rootwrapctl -n "__fish_rootwrapctl_needs_command" -f -a "check" -d 'Check filters and settings, and run their tests'
complete -c rootwrapctl -n "__fish_rootwrapctl_needs_command" -f -a "explain" -d 'Say how a command would be decided, and why'
complete -c rootwrapctl -n "__fish_rootwrapctl_needs_command" -f -a "reload" -d 'Make the service read its policy again'
complete -c rootwrapctl -n "__fish_rootwrapctl_needs_command" -f -a "status" -d 'Show whether the service runs, with which policy, and what it has done'
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand check" -l config -d 'The service\'s settings file' -r -F
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand check" -l socket -d 'Socket of the service' -r -F
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand check" -l no-owner-check -d 'Do not ask that files belong to root'
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand check" -l json -d 'Print one JSON document instead of text'
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand explain" -l policy -d 'Read filters from this directory; again for more, later ones mask earlier ones' -r -f -a "(__fish_complete_directories)"
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand explain" -l user -d 'Decide for this user (name or number) with the user\'s groups' -r -f -a "(__fish_complete_users)"
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand explain" -l group -d 'Decide for a member of this group too (name or number)' -r
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand explain" -l unit -d 'Decide for a process of this systemd unit' -r
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand explain" -l label -d 'Decide for a process with this security label' -r
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand explain" -l config -d 'The service\'s settings file' -r -F
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand explain" -l env -d 'A variable that the caller would set; without a value, to the present one' -r
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand explain" -l filter -d 'Only this filter may allow it' -r
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand explain" -s D -l chdir -d 'The caller would pass a working directory' -r -f -a "(__fish_complete_directories)"
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand explain" -l socket -d 'Socket of the service' -r -F
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand explain" -l offline -d 'Read the files and decide here; do not ask the service'
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand explain" -l no-owner-check -d 'Do not ask that files belong to root'
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand explain" -l json -d 'Print one JSON document instead of text'
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand reload" -l socket -d 'Socket of the service' -r -F
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand reload" -l json -d 'Print one JSON document instead of text'
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand reload" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand status" -l socket -d 'Socket of the service' -r -F
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand status" -l json -d 'Print one JSON document instead of text'
complete -c rootwrapctl -n "__fish_rootwrapctl_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
