complete -c rootwrap -l socket -d 'Socket of the service' -r -F
complete -c rootwrap -s D -l chdir -d 'Run in this directory, where the filter lets you choose' -r -f -a "(__fish_complete_directories)"
complete -c rootwrap -l env -d 'Set a variable that the filter allows; without a value, to its present one' -r
complete -c rootwrap -l profile -d 'Consult this profile instead of the filters' -r
complete -c rootwrap -l filter -d 'Only this filter may allow it' -r
complete -c rootwrap -l timeout -d 'End the command after this time' -r
complete -c rootwrap -s l -l list -d 'List the filters that you may use'
complete -c rootwrap -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rootwrap -s V -l version -d 'Print version'
